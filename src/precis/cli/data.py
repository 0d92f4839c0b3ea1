import typer

app = typer.Typer(help="data")


@app.command("list")
def list_() -> None:
    """x"""
