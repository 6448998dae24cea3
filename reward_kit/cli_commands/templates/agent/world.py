"""The world of an episode: some boxes with things in them."""

from typing import Any

from reward_kit.agent import World, tool
from reward_kit.models import Sample


class Boxes(World):
    """Boxes that the model can look into, and move things between."""

    def __init__(self, sample: Sample) -> None:
        self.boxes: dict[str, list[str]] = {name: list(held) for name, held in sample.columns["boxes"].items()}
        self.moves = 0

    @tool
    def look(self, box: str) -> str:
        """Say what is in a box.

        Args:
            box: the name of the box
        """
        return ", ".join(self.boxes[box]) or "nothing"

    @tool
    def move(self, thing: str, source: str, target: str) -> str:
        """Move a thing from one box to another.

        Args:
            thing: what to move
            source: the box it is in
            target: the box it goes to
        """
        self.boxes[source].remove(thing)
        self.boxes[target].append(thing)
        self.moves += 1
        return f"The {thing} is in {target}."

    def facts(self) -> dict[str, Any]:
        """What the reward is told of the world in the end."""
        return {"boxes": self.boxes, "moves": self.moves}
