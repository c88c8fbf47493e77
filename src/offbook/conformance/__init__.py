"""The contract as a suite that can be pointed at any provider.

    report = await run(Endpoint.parse("http://127.0.0.1:8770"), token)

It speaks nothing but the contract (`POST /v1/<verb>`), under agent and session names of its own that no
host has, so it can be run against a provider in use: what that provider holds is neither read nor changed.
What the suite itself wrote stays there, under agents named `conformance-…`.
"""

from offbook.conformance.report import Report, Result
from offbook.conformance.suite import CHECKS, PROMISES, run

__all__ = ["CHECKS", "PROMISES", "Report", "Result", "run"]
