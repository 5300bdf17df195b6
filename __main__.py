"""``python -m crowdppl`` is the command ``crowdppl``."""

from crowdppl.cli import app

if __name__ == "__main__":
    app(prog_name="crowdppl")
