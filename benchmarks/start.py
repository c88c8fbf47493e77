from benchmarks.results import Findings
from benchmarks.run import Run
TITLE="x"
def measure(run: Run)->Findings: return Findings(bars=[],rows=[])
