"""Labels of a CSV file in a process that has just started: ``fresh.py crowdppl|crowd-kit FILE``.

Prints the seconds from before the imports and from after them until the labels are there, as JSON.
"""

import json
import sys
from time import perf_counter

package, file = sys.argv[1:]
started = perf_counter()
if package == "crowdppl":
    import crowdppl as cp
else:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene
imported = perf_counter()
if package == "crowdppl":
    labels = cp.fit("dawid_skene", cp.Annotations.from_csv(file), progress=False).labels
else:
    labels = DawidSkene(100).fit_predict(pd.read_csv(file))
finished = perf_counter()
print(json.dumps({"with imports": finished - started, "without imports": finished - imported}))
