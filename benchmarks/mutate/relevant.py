"""Which tests matter for a mutant: a table from source files to test files, the nearest first."""

from __future__ import annotations

import re

__all__ = ["TESTS", "UNTOUCHED", "relevant_to"]

TESTS = (
    (r"kernels/blake", "table_bodies"),
    (r"kernels/(coin|bits|ahead)", "siphash coin key_search portable kernels"),
    (r"kernels/(bodies|tables)", "body table_bodies table_loops table_store table_batches"),
    (r"kernels/(portable|odds)", "portable kernels transforms_algorithms calibrant"),
    (r"kernels/(anchor|refine|crowd|safe)", "refining drift_state drift_rules raw_safe late proof"),
    (r"kernels/(anchor|crowd)", "late_corrections fading bounds_played"),
    (r"kernels/wary", "wary"),
    (r"kernels/fetch", "fetch"),
    (r"kernels/swaps", "swaps"),
    (r"kernels/mended", "classes_mended classes_late"),
    (r"kernels/(blackwell|pairs)", "proof layout late replay"),
    (r"kernels/(blend|opinions|gammas)", "regression_aggregated regression_contract"),
    (r"kernels/evidence", "late_watch monitor_table group_watch monitor"),
    (r"kernels/games", "simulate_batch simulate"),
    (r"kernels/groups", "groups_stream groups_proof groups"),
    (r"kernels/index", "desk tickets"),
    (r"kernels/intervals", "regression_interval regression_contract regression_verbs"),
    (r"kernels/intervals", "regression_aggregated regression_version1"),
    (r"kernels/margins", "online_svm"),
    (r"kernels/quantiles", "regression_distribution regression_quantile regression_contract"),
    (r"kernels/scaling", "classes_mended classes_contract"),
    (r"kernels/shifts", "regression_mixed regression_contract"),
    (r"kernels/tallies", "follower summary"),
    (r"kernels/scores", "losses raw_safe calibrant"),
    (r"kernels/transforms", "transforms_algorithms transforms history calibrant late_corrections"),
    (r"kernels/(alone|whole|on_array|layout|place|rounds|two_point|gaps)", "alone whole layout"),
    (r"kernels/(batches|rounds|rule)", "replay play late corrections"),
    (r"kernels/[^/]*$", "proof kernels contract"),
    (r"calibrators", "layout grid proof refining drift_rules late kernels contract bad_input"),
    (r"calibrators/base", "account"),
    (r"bounds/(game|groups)", "bounds_game groups_proof"),
    (r"bounds/mixture", "bounds_mixture"),
    (r"bounds/(anchored|refining|late)", "bounds_patience late_games refining"),
    (r"bounds/horizon", "bounds_patience promise certificate"),
    (r"bounds/intervals", "regression_interval"),
    (r"bounds", "bounds certificate promise promise_kinds bounds_played"),
    (r"monitor/group_watch", "group_watch"),
    (r"monitor/late", "late_watch"),
    (r"monitor", "monitor_table monitor late_watch group_watch verbs"),
    (r"groups", "groups_stream groups groups_proof verbs intact"),
    (r"classes/(calibrant|vector_mixture|mended)", "classes_mended"),
    (r"classes/(simplex|vectors)", "classes_simplex classes_simplex_bound"),
    (r"classes/version1", "classes_version1"),
    (r"classes/grown", "classes_grown"),
    (r"classes/metrics", "classes_metrics"),
    (r"classes", "classes_verbs classes classes_contract intact"),
    (r"regression/(distribution|curves)", "regression_distribution others_arrays"),
    (r"regression/metrics", "regression_metrics"),
    (r"regression/(interval|level)", "regression_interval"),
    (r"regression/aggregated", "regression_aggregated"),
    (r"regression/mixed", "regression_mixed"),
    (r"regression/(pit|quantile)", "regression_quantile"),
    (r"regression/version1", "regression_version1"),
    (r"regression", "regression_verbs regression_contract regression_quantile intact"),
)
"""Patterns of source files, and what runs them; a file has the tests of every pattern it fits."""

FIRST = (
    (r"kernels/(anchor|crowd)", "recalibrator_anchored or recalibrator_fading or growing"),
    (r"kernels/refine", "recalibrator_refining or calibrant_refining"),
    (r"kernels/blackwell", "recalibrator_blackwell"),
    (r"kernels/pairs", "recalibrator_exponential or recalibrator_polynomial"),
    (r"kernels/gaps", "recalibrator_foster or recalibrator_regret_matching"),
    (r"kernels/running_mean", "recalibrator_running_mean"),
    (r"kernels/evidence", "monitor or watch"),
    (r"kernels/groups", "v3 and groups"),
    (r"kernels/(intervals|blend|opinions|gammas)", "v3 and interval_"),
    (r"kernels/(quantiles|shifts|odds)", "v3 and quantiles_"),
    (r"kernels/scaling", "v3 and class_calibrant"),
    (r"kernels/tallies", "follower or collector"),
    (r"kernels/(safe|scores)", "v3 and (raw_safe or growing_safe or calibrant_log)"),
    (r"kernels/transforms/(platt|window)", "v3 and platt"),
    (r"kernels/transforms/beta", "v3 and beta"),
    (r"kernels/transforms/(hats|means)", "v3 and (hat_means or bucket_means)"),
    (r"kernels/transforms", "v3 and transform"),
    (r"kernels/(?!blake)[^/]*$", "v3 and (foster_hart or table_recalibrator or calibrant_default)"),
    (r"calibrators", "v3 and recalibrator_"),
    (r"monitor", "monitor or watch"),
    (r"groups", "v3 and (groups or session_group)"),
    (r"classes/simplex", "v3 and simplex"),
    (r"classes", "v3 and (class or one_vs_rest or top_label or simplex)"),
    (r"regression", "(v1 or v3) and (interval_ or quantiles_ or level)"),
)
"""Which stored states a mutant must not change: they are played first, for they are fast."""

UNTOUCHED = {
    "kernels/compile.py": "its tests compile, and the others run without a compiler",
    "kernels/prefetch.py": "an instruction of compiled programs; mutants run without",
}
"""Files without mutants, and why."""


def relevant_to(file: str) -> list[tuple[str, str]]:
    """Return test files with the words that choose among their tests, in order."""
    golden = [("golden_states", words) for pattern, words in FIRST if re.match(pattern, file)][:1]
    named = [name for pattern, names in TESTS if re.match(pattern, file) for name in names.split()]
    return golden + [(name, "") for name in dict.fromkeys(named)]
