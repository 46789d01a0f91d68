"""A small synthetic corpus of biographies, made from templates. Not data about people.

Some texts name only the field of work, which several professions share, so a classifier has to
guess, and gender helps it guess: the gaps that the experiment measures exist here too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["CALLED", "PROFESSIONS", "synthetic_biographies"]

CALLED = "SYNTHETIC biographies made from templates, not data about people"


class Profession(NamedTuple):
    """Share of women, field of work, and what people of this profession alone do."""

    women: float
    field: str
    deeds: tuple[str, str]


PROFESSIONS = {
    "nurse": Profession(0.88, "health", ("dresses wounds", "runs the night ward")),
    "physician": Profession(0.45, "health", ("diagnoses infections", "prescribes medicines")),
    "surgeon": Profession(0.15, "health", ("operates on hearts", "repairs joints")),
    "teacher": Profession(0.75, "learning", ("teaches children to read", "leads a primary class")),
    "professor": Profession(0.35, "learning", ("supervises doctoral theses", "holds a chair")),
    "paralegal": Profession(0.85, "law", ("files court papers", "keeps the case records")),
    "attorney": Profession(0.35, "law", ("argues before juries", "defends the accused")),
    "painter": Profession(0.50, "art", ("paints landscapes", "works in oil on canvas")),
    "photographer": Profession(0.35, "art", ("takes portraits", "documents cities on film")),
    "dancer": Profession(0.80, "art", ("dances in modern ballets", "rehearses choreographies")),
    "architect": Profession(0.30, "building", ("draws plans of schools", "designs facades")),
    "plumber": Profession(0.08, "building", ("fits pipes", "mends boilers")),
}
FIELDS = {  # what is said of anyone in the field, and where they work
    "health": (("looks after patients", "works in medicine"), ("a hospital", "a clinic")),
    "learning": (("loves to explain", "works in education"), ("a school", "a college")),
    "law": (("prepares cases", "works in law"), ("a law firm", "the public defence")),
    "art": (("makes art", "works with light and form"), ("a studio", "an arts centre")),
    "building": (("works on new houses", "restores old houses"), ("a workshop", "a firm")),
}
VAGUE = 0.5  # share of texts that name only the field
NAMES = {
    "f": ("Anna", "Clara", "Elena", "Grace", "Ines", "Julia", "Maria", "Nora", "Rosa", "Sofia"),
    "m": ("Adam", "Boris", "David", "Felix", "Hugo", "Ivan", "Marco", "Oscar", "Peter", "Simon"),
}
FAMILY = ("Berg", "Costa", "Dahl", "Fischer", "Lind", "Moreau", "Novak", "Rossi", "Silva", "Weber")
PRONOUNS = {"f": ("She", "her"), "m": ("He", "his")}
HOBBIES = ("swimming", "chess", "gardening", "old maps", "the violin", "long walks", "cooking")
TOWNS = ("Lisbon", "Vienna", "Oslo", "Prague", "Dublin", "Ghent", "Turin", "Porto", "Bergen")
TEMPLATES = (
    "{name} is at {place} in {town}, where {he} {does}. {He} has {years} years of experience. "
    "In {his} free time {he} enjoys {hobby}.",
    "{name} grew up in {town}. Today {he} {does} at {place}. {He} shares {his} home with a dog and "
    "likes {hobby}.",
    "At {place}, {name} {does} and has done so for {years} years. {He} studied in {town}; {his} "
    "colleagues know {his} love of {hobby}.",
)


def synthetic_biographies(n: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Texts, professions and genders; the share of women differs from profession to profession.

    Returns
    -------
    texts, professions, genders : lists of n strings
        A gender is "f" or "m", as the pronouns of the text say.

    Examples
    --------
    >>> from expunge.reproduce.bios.synthetic import synthetic_biographies
    >>> texts, professions, genders = synthetic_biographies(3)
    >>> len(texts), set(genders) <= {"f", "m"}
    (3, True)
    """
    rng = np.random.default_rng(seed)
    professions = [str(name) for name in rng.choice(list(PROFESSIONS), n)]
    genders = ["f" if rng.random() < PROFESSIONS[name].women else "m" for name in professions]
    pairs = zip(professions, genders, strict=True)
    return [_biography(rng, *pair) for pair in pairs], professions, genders


def _biography(rng: np.random.Generator, profession: str, gender: str) -> str:
    known = PROFESSIONS[profession]
    shared, places = FIELDS[known.field]
    He, his = PRONOUNS[gender]
    text: str = rng.choice(TEMPLATES)
    return text.format(
        name=f"{rng.choice(NAMES[gender])} {rng.choice(FAMILY)}",
        He=He,
        he=He.lower(),
        his=his,
        does=rng.choice(shared if rng.random() < VAGUE else known.deeds),
        place=rng.choice(places),
        town=rng.choice(TOWNS),
        years=rng.integers(2, 31),
        hobby=rng.choice(HOBBIES),
    )
