"""Short sentences about people at work: each is written twice, once for each of two genders."""

import numpy as np

JOBS = [
    "nurse",
    "doctor",
    "teacher",
    "pilot",
    "plumber",
    "lawyer",
    "farmer",
    "baker",
    "painter",
    "driver",
    "singer",
    "judge",
    "clerk",
    "chemist",
    "tailor",
    "barber",
    "sailor",
    "writer",
    "builder",
    "dancer",
]
FRAMES = [
    "{He} works as a {job} in a small town.",
    "The {job} said that {he} was tired.",
    "{Name} is a {job}, and {his} friends like {him}.",
    "Everybody knows that the {job} keeps {his} word.",
    "This {man} has been a {job} for years.",
]
WORDS = {
    "f": {"He": "She", "he": "she", "his": "her", "him": "her", "man": "woman", "Name": "Mary"},
    "m": {"He": "He", "he": "he", "his": "his", "him": "him", "man": "man", "Name": "John"},
}

TEXTS = [f.format(job=j, **WORDS[g]) for j in JOBS for f in FRAMES for g in "fm"]
GENDER = np.array([g for _ in JOBS for _ in FRAMES for g in "fm"])
HELD_OUT = np.array([j in JOBS[14:] for j in JOBS for _ in FRAMES for _ in "fm"])
