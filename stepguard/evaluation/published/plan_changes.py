"""What an action of a PlanBench world changes, as a record: by its words, by its rule, and what a state becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from stepguard.evaluation.published.plan_rules import DOMAINS, Facts, PlanAction
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value

PlanDomain = Literal["blocksworld", "logistics", "mystery_blocksworld"]

_BOOLEAN: Final = ValueType(kind="boolean")
_NOT: Final = "no_"
_PAIRS: Final = {"craves": ("craves", "craved")}


def is_ruled_change(claimed: Value, values: Mapping[str, Value], domain: str, action: PlanAction) -> bool:
    """Whether a claimed change is what the action's rule makes."""
    return claimed == ruled_change(domain, action)


def change_type(domain: str, kind: str) -> ValueType:
    """The type of a change that a kind of action makes.

    Names are texts: listing all of them three times with every step would be most of what is asked.
    """
    keys = ruled_change(domain, PlanAction(kind, tuple(DOMAINS[domain].rules[kind].places)))
    fields = tuple((key, _BOOLEAN if key == "harmony" else TEXT) for key in keys)
    return ValueType(kind="record", record=RecordType("Change", fields))


def ruled_change(domain: str, action: PlanAction) -> Record:
    """What the facts that an action makes true and false come to."""
    rule = DOMAINS[domain].rules[action.kind]
    adds = {fact[0]: fact[1:] for fact in rule.facts(rule.adds, action.objects)}
    if domain == "blocksworld":
        moved = action.objects[0]
        held = adds["holding"][0] if "holding" in adds else "nothing"
        # The hand before the place: a model that says first what it holds no longer names the block it was on.
        place = "hand" if "holding" in adds else "table" if "ontable" in adds else adds["on"][1]
        return Record({"block": moved, "hand": held, "place": place})
    if domain == "logistics":
        thing, at = adds.get("in") or adds["at"]
        return Record({"thing": thing, "at": at})
    fields: dict[str, Value] = {}
    # The order of the rule's own lists, so that a kind of action has the same fields always.
    for prefix, facts in (("", rule.adds), (_NOT, rule.deletes)):
        for fact in facts:
            (name, *objects) = next(iter(rule.facts([fact], action.objects)))
            if not objects:
                fields[name] = not prefix
            for key, value in zip(_PAIRS.get(name, (name,)), objects, strict=False):
                fields[f"{prefix}{key}"] = value
    return Record(fields)


def change_in_words(domain: str, text: str) -> Record:
    """What an action in words changes, from the place of its words alone: it shares no code with the rules.

    Raises ValueError: these are no words of an action.
    """
    words = text.replace("the ", "").split()
    match domain, words:
        case "blocksworld", ["pick", "up", x, _]:
            return Record({"block": x, "hand": x, "place": "hand"})
        case "blocksworld", ["put", "down", x, _]:
            return Record({"block": x, "hand": "nothing", "place": "table"})
        case "blocksworld", ["stack", x, "block", "on", "top", "of", y, _]:
            return Record({"block": x, "hand": "nothing", "place": y})
        case "blocksworld", ["unstack", x, "block", *_]:
            return Record({"block": x, "hand": x, "place": "hand"})
        case "logistics", ["load", thing, "into", carrier, *_]:
            return Record({"thing": thing, "at": carrier})
        case "logistics", ["unload", thing, "from", _, "at", place]:
            return Record({"thing": thing, "at": place})
        case "logistics", ["drive" | "fly", thing, "from", _, "to", place, *_]:
            return Record({"thing": thing, "at": place})
        case _, ["attack", _, x]:
            return Record({"pain": x, "no_province": x, "no_planet": x, "harmony": False})
        case _, ["succumb", _, x]:
            return Record({"province": x, "planet": x, "harmony": True, "no_pain": x})
        case _, ["overcome", _, x, "from", _, y]:
            made: dict[str, Value] = {"craves": x, "craved": y, "province": x, "harmony": True}
            return Record({**made, "no_province": y, "no_pain": x})
        case _, ["feast", _, x, "from", _, y]:
            made = {"pain": x, "province": y, "no_craves": x, "no_craved": y, "no_province": x}
            return Record({**made, "harmony": False})
    raise ValueError(f"{text!r} is no action of {domain}")


def applied(domain: str, state: Facts, change: Record) -> Facts:
    """The state after a change, which may be a wrong one."""
    if domain == "blocksworld":
        return _stacked(state, change)
    if domain == "logistics":
        thing, at = str(change["thing"]), str(change["at"])
        kept = {fact for fact in state if fact[0] not in ("at", "in") or fact[1] != thing}
        return frozenset({*kept, ("at" if at.startswith("location_") else "in", thing, at)})
    facts = set(state)
    pairs = {second: first for first, second in _PAIRS.values()}
    for key, value in change.items():
        name = key.removeprefix(_NOT)
        if name in pairs:
            continue
        false = key.startswith(_NOT) or value is False
        prefix = _NOT if key.startswith(_NOT) else ""
        objects = () if isinstance(value, bool) else (str(value),)
        if name in _PAIRS:
            objects = (*objects, str(change[prefix + _PAIRS[name][1]]))
        (facts.discard if false else facts.add)((name, *objects))
    return frozenset(facts)


def _stacked(state: Facts, change: Record) -> Facts:
    """The state of blocks with one of them moved; which blocks are clear follows from where all of them are."""
    places = {fact[1]: fact[2] if fact[0] == "on" else "table" for fact in state if fact[0] in ("on", "ontable")}
    places |= {fact[1]: "hand" for fact in state if fact[0] == "holding"}
    places[str(change["block"])] = str(change["place"])
    held = str(change["hand"])
    covered = {held, *places.values()}
    facts: set[tuple[str, ...]] = {("handempty",) if held == "nothing" else ("holding", held)}
    for block, place in places.items():
        if place != "hand":
            facts.add(("ontable", block) if place == "table" else ("on", block, place))
        if block not in covered and place != "hand":
            facts.add(("clear", block))
    return frozenset(facts)
