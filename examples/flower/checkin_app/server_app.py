"""The ServerApp: runs the plan of the analyzer's folder, and says what it cost."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from dpcheckin.flower.server import check_in

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Rounds, from the first to the last one that the budget pays for."""
    result = check_in(grid, context.run_config)
    print(f"test accuracy {100 * result['metrics']['accuracy']:.1f} %")
    print(result["statement"])
