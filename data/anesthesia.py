"""The anesthesia data of Dawid & Skene (1979), their table 1.

Five anaesthetists assessed from the notes of 45 patients how fit each patient was for a general anaesthetic, on a
scale from 1 (fit) to 4. The first assessed every patient three times, so that there are 315 annotations.

Source:
    A. P. Dawid and A. M. Skene (1979), "Maximum Likelihood Estimation of Observer Error-Rates Using the EM
    Algorithm", Journal of the Royal Statistical Society C 28(1), 20-28, table 1.
"""

import pandas as pd

# Seven digits for each of the patients 1 to 45: three annotations of anaesthetist 1, then one each of 2, 3, 4 and 5.
_BY_PATIENT = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223
2322223 4444444 2223343 1111111 2223212 1211111 1112111 1111111 1111111
2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222
1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343
2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""

_WORKERS = (1, 1, 1, 2, 3, 4, 5)


def anesthesia() -> pd.DataFrame:
    """Return the 315 annotations, patient by patient: columns task (1-45), worker (1-5) and label (1-4)."""
    return pd.DataFrame(
        [
            (patient, worker, int(digit))
            for patient, digits in enumerate(_BY_PATIENT.split(), start=1)
            for worker, digit in zip(_WORKERS, digits, strict=True)
        ],
        columns=["task", "worker", "label"],
    )
