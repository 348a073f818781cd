"""Small XGBoost scripts for `scenario_program.py`."""

from typing import Any

PREAMBLE = """
generator = np.random.default_rng(0)
features = generator.random((60, 4))
labels = (features.sum(axis=1) + generator.random(60) * 0.1 > 2).astype(float)
amounts = features @ np.arange(4.0)
classes = (features[:, 0] * 3).astype(int)
from smdebug import ReductionConfig
train_data, other_data = xgb.DMatrix(features[:40], labels[:40]), xgb.DMatrix(features[40:], labels[40:])
BINARY = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}

def fit(hook, parameters=BINARY, rounds=5, evals="both", callbacks=(), data=train_data, **options):
    chosen = {"both": [(train_data, "train"), (other_data, "validation")], "train": [(train_data, "train")],
              "none": []}.get(evals, evals) if isinstance(evals, str) else evals
    return xgb.train(parameters, data, rounds, evals=chosen, verbose_eval=False,
                     callbacks=[hook, *callbacks], **options)

def attempt(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except Exception as error:
        return f"raises {type(error).__name__}"
"""
EACH = "save_config=smd.SaveConfig(save_interval=1)"
DATA = "train_data=train_data, validation_data=other_data, hyperparameters=BINARY"
EVERYTHING = (
    'include_collections=["metrics", "losses", "predictions", "labels", "feature_importance", "trees", '
    '"average_shap", "full_shap", "hyperparameters"]'
)


def with_hook(arguments: str, *body: str) -> str:
    return "\n".join([f"hook = smd.Hook(out, {arguments})", *body])


def fit(arguments: str, options: str = "", *before: str) -> str:
    return with_hook(arguments, *before, f"fit(hook, {options})")


def of(collection: str, options: str = "") -> str:
    return fit(f'{EACH}, include_collections=["{collection}"], {DATA}', options)


SCENARIOS = {
    # Which rounds.
    "default": fit(""),
    "default_25_rounds": fit("", "rounds=25"),
    "each_round": fit(EACH),
    "interval_2": fit("save_config=smd.SaveConfig(save_interval=2)"),
    "start_step": fit("save_config=smd.SaveConfig(save_interval=2, start_step=1)"),
    "end_step": fit("save_config=smd.SaveConfig(save_interval=1, end_step=3)"),
    "save_steps": fit("save_config=smd.SaveConfig(save_steps=[0, 3])"),
    "save_steps_beyond": fit("save_config=smd.SaveConfig(save_steps=[100])"),
    "of_train_mode": fit("save_config={smd.modes.TRAIN: smd.SaveConfigMode(save_interval=2)}"),
    "of_global_mode": fit("save_config={smd.modes.GLOBAL: smd.SaveConfigMode(save_interval=2)}"),
    "one_round": fit(EACH, "rounds=1"),
    "no_training": with_hook(EACH),
    "mode_train": fit(EACH, "", "hook.set_mode(smd.modes.TRAIN)"),
    "mode_eval": fit(f"{EACH}, {EVERYTHING}, {DATA}", "", "hook.set_mode(smd.modes.EVAL)"),
    "two_trainings": with_hook(EACH, "fit(hook, rounds=3)\nfit(hook, rounds=3)"),
    "continued": with_hook(EACH, "booster = fit(hook, rounds=3)\nfit(hook, rounds=3, xgb_model=booster)"),
    # Collections.
    "losses": of("losses"),
    "metrics": of("metrics"),
    "predictions": of("predictions"),
    "labels": of("labels"),
    "feature_importance": of("feature_importance"),
    "trees": of("trees"),
    "average_shap": of("average_shap"),
    "full_shap": of("full_shap"),
    "hyperparameters": of("hyperparameters"),
    "everything": fit(f"{EACH}, {EVERYTHING}, {DATA}"),
    "everything_without_data": fit(f"{EACH}, {EVERYTHING}"),
    "save_all": fit(f"{EACH}, save_all=True, {DATA}"),
    "save_all_without_data": fit(f"{EACH}, save_all=True"),
    "save_all_default_interval": fit(f"save_all=True, {DATA}", "rounds=12"),
    "collection_all": fit(f'{EACH}, include_collections=["all"], {DATA}'),
    "nested_collections": fit(f'{EACH}, include_collections=[["losses"], "labels"], {DATA}'),
    "collection_unknown": fit(f'{EACH}, include_collections=["unknown"]'),
    "collection_empty": fit(EACH, "", 'hook.get_collection("own")'),
    "custom": fit(f'{EACH}, include_collections=["own"]', "", 'hook.get_collection("own").include("validation")'),
    "custom_of_importance": fit(
        f'{EACH}, include_collections=["own", "feature_importance"]',
        "",
        'hook.get_collection("own").include("feature_importance/gain")',
    ),
    "custom_not_included": fit(EACH, "", 'hook.get_collection("own").include("validation")'),
    "regex": fit(f'{EACH}, include_regex=["validation"]'),
    "regex_of_importance": fit(f'{EACH}, include_regex=["feature_importance/weight"]'),
    "losses_interval": fit(
        f'{EACH}, include_collections=["losses"]',
        "",
        'hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=2)',
    ),
    "metrics_interval": fit(
        f'{EACH}, include_collections=["losses", "metrics"]',
        "",
        'hook.get_collection("metrics").save_config = smd.SaveConfig(save_interval=3)',
    ),
    "importance_interval": fit(
        f'{EACH}, include_collections=["feature_importance"]',
        "",
        'hook.get_collection("feature_importance").save_config = smd.SaveConfig(save_interval=2)',
    ),
    "changed_regex_of_losses": fit(
        f'{EACH}, include_collections=["losses"]', "", 'hook.get_collection("losses").include("predictions")'
    ),
    # Data to evaluate.
    "no_evals": fit(EACH, 'evals="none"'),
    "no_evals_everything": fit(f"{EACH}, {EVERYTHING}, {DATA}", 'evals="none"'),
    "train_alone": fit(EACH, 'evals="train"'),
    "three_evals": fit(EACH, 'evals=[(train_data, "train"), (other_data, "a-b"), (other_data, "validation_2")]'),
    "two_metrics": fit(EACH, 'parameters={**BINARY, "eval_metric": ["logloss", "auc"]}'),
    "many_metrics": fit(
        f'{EACH}, include_collections=["losses"]',
        'parameters={**BINARY, "eval_metric": ["logloss", "auc", "aucpr", "error", "error@0.7", "rmse", "mae", "map", '
        '"ndcg"]}',
    ),
    "losses_of_many_metrics": fit(
        f'{EACH}, include_collections=["losses", "metrics"]',
        'parameters={**BINARY, "eval_metric": ["map", "auc", "error"]}',
    ),
    # Kinds of training.
    "regression": fit(
        f"{EACH}, save_all=True, train_data=amount_data, validation_data=amount_data",
        'parameters={"objective": "reg:squarederror", "max_depth": 3, "nthread": 1}, data=amount_data, '
        'evals=[(amount_data, "train")]',
    ).replace("hook =", "amount_data = xgb.DMatrix(features, amounts)\nhook =", 1),
    "multiclass": fit(
        f"{EACH}, save_all=True, train_data=class_data, validation_data=class_data",
        'parameters={"objective": "multi:softmax", "num_class": 3, "max_depth": 2, "nthread": 1}, data=class_data, '
        'evals=[(class_data, "train")]',
    ).replace("hook =", "class_data = xgb.DMatrix(features, classes)\nhook =", 1),
    "multiclass_probabilities": fit(
        f"{EACH}, save_all=True, train_data=class_data, validation_data=class_data",
        'parameters={"objective": "multi:softprob", "num_class": 3, "max_depth": 2, "nthread": 1, '
        '"eval_metric": ["mlogloss", "merror"]}, data=class_data, evals=[(class_data, "train")]',
    ).replace("hook =", "class_data = xgb.DMatrix(features, classes)\nhook =", 1),
    "ranking": fit(
        f"{EACH}, save_all=True, validation_data=ranked",
        'parameters={"objective": "rank:pairwise", "max_depth": 2, "nthread": 1, "eval_metric": ["ndcg", "map"]}, '
        'data=ranked, evals=[(ranked, "train")]',
    ).replace("hook =", "ranked = xgb.DMatrix(features, labels)\nranked.set_group([20, 20, 20])\nhook =", 1),
    "poisson": fit(
        f"{EACH}, save_all=True, validation_data=train_data", 'parameters={"objective": "count:poisson", "nthread": 1}'
    ),
    "dart": fit(f"{EACH}, save_all=True, {DATA}", 'parameters={**BINARY, "booster": "dart", "rate_drop": 0.5}'),
    "linear": fit(
        f"{EACH}, {DATA}", 'parameters={"objective": "binary:logistic", "booster": "gblinear", "nthread": 1}'
    ),
    "linear_importance": fit(
        f'{EACH}, include_collections=["feature_importance"], {DATA}',
        'parameters={"objective": "binary:logistic", "booster": "gblinear", "nthread": 1}',
    ),
    "linear_shap": fit(
        f'{EACH}, include_collections=["average_shap", "predictions"], {DATA}',
        'parameters={"objective": "binary:logistic", "booster": "gblinear", "nthread": 1}',
    ),
    "forest": fit(f"{EACH}, save_all=True, {DATA}", 'parameters={**BINARY, "num_parallel_tree": 3, "subsample": 0.5}'),
    "deep_trees": fit(f"{EACH}, save_all=True, {DATA}", 'parameters={**BINARY, "max_depth": 8}'),
    "histogram": fit(f"{EACH}, save_all=True, {DATA}", 'parameters={**BINARY, "tree_method": "hist"}'),
    "weights_of_rows": fit(
        f"{EACH}, save_all=True, train_data=weighted, validation_data=weighted", "data=weighted"
    ).replace("hook =", "weighted = xgb.DMatrix(features, labels, weight=features[:, 0])\nhook =", 1),
    "missing_values": fit(
        f"{EACH}, save_all=True, train_data=holes, validation_data=holes", 'data=holes, evals=[(holes, "train")]'
    ).replace("hook =", "features[::3, 1] = np.nan\nholes = xgb.DMatrix(features, labels)\nhook =", 1),
    "feature_names": fit(
        f"{EACH}, save_all=True, train_data=named, validation_data=named", 'data=named, evals=[(named, "train")]'
    ).replace(
        "hook =",
        'named = xgb.DMatrix(features, labels, feature_names=["age", "size", "a/b", "last one"])\nhook =',
        1,
    ),
    "constant_labels": fit(
        f"{EACH}, save_all=True, train_data=flat, validation_data=flat", 'data=flat, evals=[(flat, "train")]'
    ).replace("hook =", "flat = xgb.DMatrix(features, np.ones(60))\nhook =", 1),
    "custom_objective": fit(
        EACH,
        "obj=lambda found, data: (1 / (1 + np.exp(-found)) - data.get_label(), np.full(len(found), 0.25))",
    ),
    "custom_metric": fit(EACH, 'custom_metric=lambda found, data: ("own", float(np.mean(found)))'),
    "custom_metric_and_another": fit(
        f'{EACH}, include_collections=["losses", "metrics"]',
        'parameters={**BINARY, "eval_metric": "error"}, custom_metric=lambda found, data: ("own", float(found[0]))',
    ),
    # XGBoost 1.7 calls callbacks in the order of a set, up to the first that stops the training: whether a hook gets
    # the last round, 11, is chance.
    "early_stopping": fit(
        "save_config=smd.SaveConfig(save_interval=1, end_step=11)", "rounds=30, early_stopping_rounds=2"
    ),
    "other_callbacks": fit(EACH, "callbacks=[xgb.callback.LearningRateScheduler([0.5, 0.4, 0.3, 0.2, 0.1])]"),
    "evals_result": with_hook(EACH, "found = {}\nfit(hook, evals_result=found)\nseen['found'] = found"),
    # Other ways to train.
    "classifier": with_hook(
        EACH,
        "xgb.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1, callbacks=[hook]).fit("
        "features, labels, eval_set=[(features, labels)], verbose=False)",
    ),
    "classifier_without_evals": with_hook(
        f"{EACH}, save_all=True",
        "xgb.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1, callbacks=[hook]).fit(features, labels)",
    ),
    "regressor": with_hook(
        f'{EACH}, include_collections=["feature_importance", "trees"]',
        'xgb.XGBRegressor(n_estimators=4, max_depth=2, n_jobs=1, callbacks=[hook], eval_metric=["rmse", "mae"]).fit('
        "features, amounts, eval_set=[(features, amounts), (features[:9], amounts[:9])], verbose=False)",
    ),
    "cross_validation": with_hook(EACH, "xgb.cv(BINARY, train_data, 4, nfold=2, callbacks=[hook], verbose_eval=False)"),
    # Values that scripts save.
    "scalar_before": fit(EACH, "", 'hook.save_scalar("number", 3)'),
    "scalar_after": fit(EACH) + '\nhook.save_scalar("number", 3)',
    "scalar_after_skipped_rounds": fit("") + '\nhook.save_scalar("number", 3)',
    "scalars_of_rounds": with_hook(
        "save_config=smd.SaveConfig(save_interval=3)",
        "numbers = iter(range(99))",
        "def objective(found, data):\n    number = next(numbers)\n"
        '    hook.save_scalar("number", number)\n    hook.save_scalar(f"number{number}", number)\n'
        "    return found - data.get_label(), np.ones(len(found))",
        "fit(hook, rounds=8, obj=objective)",
    ),
    "scalars_of_each_round": with_hook(
        EACH,
        "numbers = iter(range(99))",
        'def metric(found, data):\n    hook.save_scalar("number", next(numbers))\n    return "own", float(found[0])',
        'fit(hook, custom_metric=metric, evals="train")',
    ),
    # Files, settings.
    "tensorboard": fit(f"{EACH}, save_all=True, export_tensorboard=True, {DATA}"),
    "dry_run": fit(f"{EACH}, save_all=True, dry_run=True, {DATA}"),
    "all_workers": fit(f'{EACH}, include_workers="all"'),
    "reductions": fit(f'{EACH}, reduction_config=ReductionConfig(reductions=["mean"])'),
    "reductions_of_collection": fit(
        f"{EACH}, {EVERYTHING}, {DATA}",
        "",
        'hook.get_collection("predictions").reduction_config = ReductionConfig(reductions=["mean"])',
    ),
    "from_json": "import json, pathlib\npathlib.Path(out).parent.mkdir(exist_ok=True)\n"
    'file = pathlib.Path(out).with_suffix(".json")\n'
    'file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": "2"}, '
    '"CollectionConfigurations": [{"CollectionName": "losses"}, {"CollectionName": "feature_importance", '
    '"CollectionParameters": {"save_interval": "3"}}, {"CollectionName": "own", "CollectionParameters": '
    '{"include_regex": "validation"}}]}))\n'
    "hook = smd.Hook.create_from_json_file(str(file))\nfit(hook)",
    "from_json_default": "import json, pathlib\npathlib.Path(out).parent.mkdir(exist_ok=True)\n"
    'file = pathlib.Path(out).with_suffix(".json")\n'
    'file.write_text(json.dumps({"LocalPath": out}))\n'
    "hook = smd.Hook.hook_from_config(str(file))\nfit(hook, rounds=12)",
    "data_of_wrong_type": f'seen["list"] = attempt(smd.Hook, out, {EACH}, train_data=[1, 2])\n'
    'seen["missing"] = attempt(smd.Hook, out, train_data=("/missing", "csv"))\n'
    'seen["array"] = attempt(smd.Hook, out, validation_data=features)',
    "data_of_file": "import pathlib\npathlib.Path(out).parent.mkdir(exist_ok=True)\n"
    'file = pathlib.Path(out).with_suffix(".csv")\n'
    'np.savetxt(file, np.column_stack([labels, features])[:20], delimiter=",")\n'
    f'hook = smd.Hook(out, {EACH}, include_collections=["average_shap", "predictions", "labels"], '
    'train_data=(str(file), "csv"), validation_data=(str(file), "text/csv"))\nfit(hook)',
    "folder_exists": fit(EACH) + "\nhook.close()\nseen['again'] = attempt(smd.Hook, out)",
    "closed_twice": fit(EACH) + "\nhook.close()\nhook.close()",
    "attributes": fit(EACH)
    + '\nseen["hook"] = [hook.step, hook.mode, hook.mode_steps, hook.last_saved_step, hook.worker, '
    "sorted(hook.get_collections()), hook.has_default_hook_configuration()]",
}


def build_names(out: str) -> dict[str, Any]:
    import numpy as np
    import xgboost as xgb

    import smdebug.xgboost as smd

    return {"np": np, "xgb": xgb, "smd": smd, "out": out}
