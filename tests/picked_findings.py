"""Findings on results, picked by their code."""

from crowdppl.inference.findings.look import look_at
from crowdppl.inference.fitted.by_rule import ByRule


def findings_of(result, code):
    """The findings of a code on a result."""
    return [finding for finding in result.findings if finding.code == code]


def codes(result):
    """The codes of the findings on a result."""
    return [finding.code for finding in result.findings]


def found_of_crowd(annotations, posterior):
    """By code the finding on a crowd whose labels are given."""
    findings = look_at(ByRule("given", annotations, posterior))
    assert len({finding.code for finding in findings}) == len(findings)
    return {finding.code: finding for finding in findings}
