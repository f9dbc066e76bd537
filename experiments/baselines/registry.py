"""Every method of the comparison: where its adapter is, what it is told, and where it is installed."""

from __future__ import annotations

from dataclasses import dataclass

LABELS = ("regimes",)
LABELS_AND_TARGETS = ("regimes", "targets")
OBSERVATIONAL = ("observational",)
COUNT = ("n_regimes",)
TIME = ("time",)

WORDS = {
    "regimes": "regimes",
    "targets": "targets",
    "observational": "which rows are observational",
    "n_regimes": "number of regimes",
    "time": "order in time",
}


@dataclass(frozen=True)
class Method:
    """One line of the comparison.

    Parameters
    ----------
    title : str
        Name in tables.
    adapter : str
        ``module:function`` in this package.
    given : tuple of str
        Which secrets of `Problem` the method is told.
    environment : {"main", "baselines", "sdcd", "orders"}
        Where its package is installed: this project's environment, or one that ``make baselines`` makes.
    packages : tuple of str
        Whose versions are stored.
    tables : tuple of str
        On which families of tables it is run: the paper's, realistic ones, small ones, or rows in order of time.
    """

    title: str
    adapter: str
    given: tuple[str, ...] = ()
    environment: str = "baselines"
    packages: tuple[str, ...] = ()
    tables: tuple[str, ...] = ("paper", "field", "small")

    @property
    def label_free(self) -> bool:
        """Whether a user with one unlabelled table could run it (a number of regimes can be guessed)."""
        return not set(self.given) & {"regimes", "targets"} and self.given != OBSERVATIONAL

    @property
    def own(self) -> bool:
        """Whether it is our own search in another role."""
        return self.environment == "main"

    @property
    def told(self) -> str:
        """What it is given, in words."""
        return ", ".join(WORDS[name] for name in self.given) or "nothing"


def _both(key: str, title: str, adapter: str, **where: object) -> dict[str, Method]:
    """A method for observational data: on the pooled rows without labels, and on the truly observational ones."""
    return {
        key: Method(f"{title}, all rows", adapter, **where),
        f"{key}-observational": Method(f"{title}, observational rows", adapter, OBSERVATIONAL, **where),
    }


_LEARN = {"packages": ("causal-learn",)}
_IGSP = {"packages": ("graphical_model_learning", "conditional_independence")}
_LINGAM = {"environment": "orders", "packages": ("lingam",)}
_CHANGE = {"environment": "orders", "packages": ("causalchange",)}
_SDCD = {"environment": "sdcd", "packages": ("sdcd",)}

METHODS: dict[str, Method] = {
    "gies": Method("GIES", "gies_family:gies", LABELS_AND_TARGETS, packages=("gies",)),
    "gies-uncentred": Method(
        "GIES, not centred", "gies_family:gies_uncentred", LABELS_AND_TARGETS, packages=("gies",)
    ),
    "gnies": Method("GnIES, ranked", "gies_family:gnies", LABELS, packages=("gnies",)),
    "igsp": Method("IGSP", "permutations:igsp", LABELS_AND_TARGETS, **_IGSP),
    "ut-igsp": Method("UT-IGSP", "permutations:ut_igsp", LABELS, **_IGSP),
    "gmm-ut-igsp": Method(
        "GMM, then UT-IGSP", "permutations:gmm_then_ut_igsp", (*COUNT, *OBSERVATIONAL), **_IGSP
    ),
    "gmm-bic-ut-igsp": Method(
        "GMM with K by BIC, then UT-IGSP", "permutations:gmm_bic_then_ut_igsp", **_IGSP
    ),
    "hmm-ut-igsp": Method(
        "HMM, then UT-IGSP", "permutations:hmm_then_ut_igsp", TIME, tables=("time",), **_IGSP
    ),
    "gmm-search": Method("GMM, then our search", "ours:gmm_then_search", COUNT, "main", ("scikit-learn",)),
    "latentdo": Method("latentdo", "ours:default", (), "main", tables=("small",)),
    "latentdo-time": Method("latentdo, time", "ours:default", TIME, "main", tables=("time",)),
    "linear-search": Method("our linear search, regimes", "ours:linear_with_regimes", LABELS, "main"),
    "linear-search-targets": Method(
        "our linear search, targets", "ours:linear_with_targets", LABELS_AND_TARGETS, "main"
    ),
    "cam-targets": Method("CAM, intervened rows left out", "cam:cam_with_targets", LABELS_AND_TARGETS),
    "dcdi": Method("DCDI-G", "neural:dcdi", LABELS_AND_TARGETS, **_SDCD),
    "sdcd": Method("SDCD", "neural:sdcd", LABELS_AND_TARGETS, **_SDCD),
    "cdnod": Method("CD-NOD", "causal_learn:cdnod_with_regimes", LABELS, **_LEARN),
    "gmm-cdnod": Method("GMM with K by BIC, then CD-NOD", "causal_learn:gmm_then_cdnod", **_LEARN),
    "cdnod-time": Method("CD-NOD, time", "causal_learn:cdnod_with_time", TIME, tables=("time",), **_LEARN),
    "linc": Method("LINC", "causal_change:linc", LABELS, tables=("small",), **_CHANGE),
    "cmm": Method("CMM", "causal_change:cmm", tables=("small",), **_CHANGE),
    "spacetime": Method("SpaceTime", "causal_change:spacetime", TIME, tables=("time",), **_CHANGE),
    **_both("boss", "BOSS", "causal_learn:boss", **_LEARN),
    **_both("grasp", "GRaSP", "causal_learn:grasp", **_LEARN),
    **_both("lingam", "DirectLiNGAM", "lingam_family:direct_lingam", **_LINGAM),
    **_both("resit", "RESIT", "lingam_family:resit", **_LINGAM),
    **_both("topic", "Topic", "causal_change:topic", **_CHANGE),
    **_both("ges", "GES", "causal_learn:ges", **_LEARN),
    **_both("pc", "PC", "causal_learn:pc", **_LEARN),
    **_both("fci", "FCI", "causal_learn:fci", **_LEARN),
    **_both("notears", "NOTEARS", "continuous:notears", **_SDCD),
    **_both("dagma", "DAGMA", "continuous:dagma", packages=("dagma",)),
    **_both("cam", "CAM", "cam:cam"),
    **_both("var-sort", "variance sorting", "sorting:variance", packages=("causaldisco",)),
    **_both("r2-sort", "R2 sorting", "sorting:r2", packages=("causaldisco",)),
}
SLOW = ("dcdi", "sdcd")
"""Methods that need minutes on one core."""


def methods_for(tables: str) -> list[str]:
    """Names of the methods that are run on such tables."""
    return [name for name, method in METHODS.items() if tables in method.tables]
