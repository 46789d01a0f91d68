"""A small synthetic corpus of biographies, made from templates. Not data about people."""

from __future__ import annotations

import numpy as np

__all__ = ["PROFESSIONS", "synthetic_biographies"]

# profession -> share of women, what they do, where they work
PROFESSIONS: dict[str, tuple[float, tuple[str, ...], tuple[str, ...]]] = {
    "nurse": (0.85, ("cares for patients", "runs a night ward"), ("a hospital", "a clinic")),
    "teacher": (0.65, ("teaches mathematics", "leads a class"), ("a primary school", "a college")),
    "journalist": (0.5, ("writes about politics", "edits reports"), ("a newspaper", "a radio")),
    "painter": (0.45, ("paints landscapes", "exhibits portraits"), ("a studio", "a gallery")),
    "lawyer": (0.4, ("argues cases", "drafts contracts"), ("a law firm", "the public defence")),
    "engineer": (0.2, ("designs bridges", "builds turbines"), ("a factory", "a design office")),
    "surgeon": (0.15, ("operates on hearts", "repairs joints"), ("a hospital", "a university")),
    "plumber": (0.1, ("fits pipes", "repairs boilers"), ("a workshop", "a building company")),
}
NAMES = {
    "f": ("Anna", "Clara", "Elena", "Grace", "Ines", "Julia", "Maria", "Nora", "Rosa", "Sofia"),
    "m": ("Adam", "Boris", "David", "Felix", "Hugo", "Ivan", "Marco", "Oscar", "Peter", "Simon"),
}
FAMILY = ("Berg", "Costa", "Dahl", "Fischer", "Lind", "Moreau", "Novak", "Rossi", "Silva", "Weber")
PRONOUNS = {"f": ("She", "her"), "m": ("He", "his")}
HOBBIES = ("swimming", "chess", "gardening", "old maps", "the violin", "long walks", "cooking")
TOWNS = ("Lisbon", "Vienna", "Oslo", "Prague", "Dublin", "Ghent", "Turin", "Porto", "Bergen")
TEMPLATES = (
    "{name} works at {place} in {town}, where {he} {does}. {He} has {years} years of experience. "
    "In {his} free time {he} enjoys {hobby}.",
    "{name} grew up in {town}. Today {he} {does} at {place}. {He} shares {his} home with a dog and "
    "likes {hobby}.",
    "At {place}, {name} {does} and has done so for {years} years. {He} studied in {town}; {his} "
    "colleagues know {his} love of {hobby}.",
)


def synthetic_biographies(n: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Texts, professions and genders; the share of women differs from profession to profession.

    Parameters
    ----------
    n : int
    seed : int

    Returns
    -------
    texts, professions, genders : lists of n strings
        A gender is "f" or "m", as the pronouns of the text say.

    Examples
    --------
    >>> from expunge.reproduce.bios_corpus import synthetic_biographies
    >>> texts, professions, genders = synthetic_biographies(3)
    >>> len(texts), set(genders) <= {"f", "m"}
    (3, True)
    """
    rng = np.random.default_rng(seed)
    texts, professions, genders = [], [], []
    for _ in range(n):
        profession = str(rng.choice(list(PROFESSIONS)))
        share, deeds, places = PROFESSIONS[profession]
        gender = "f" if rng.random() < share else "m"
        He, his = PRONOUNS[gender]
        texts.append(
            str(rng.choice(TEMPLATES)).format(
                name=f"{rng.choice(NAMES[gender])} {rng.choice(FAMILY)}",
                He=He,
                he=He.lower(),
                his=his,
                does=rng.choice(deeds),
                place=rng.choice(places),
                town=rng.choice(TOWNS),
                years=rng.integers(2, 31),
                hobby=rng.choice(HOBBIES),
            )
        )
        professions.append(profession)
        genders.append(gender)
    return texts, professions, genders
