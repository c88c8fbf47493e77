"""The contract as a suite that can be pointed at any provider.

    report = await run(Endpoint.parse("http://127.0.0.1:8770"), token)

It speaks nothing but the contract (`POST /v1/<verb>`), under agent and session names of its own that no
host has: what a provider in use holds is neither read nor changed. But what the suite itself wrote stays there, under
agents named `conformance-…`, for no verb removes an agent: use a provider that is there to be tested.
"""

from offbook.contrib.conformance.check import Report, Result
from offbook.contrib.conformance.suite import CHECKS, PROMISES, run

__all__ = ["CHECKS", "PROMISES", "Report", "Result", "run"]
