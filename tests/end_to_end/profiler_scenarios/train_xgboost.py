"""Training of a booster, a round a step."""

import numpy as np
import xgboost
from faults import EPOCHS, STEPS_PER_EPOCH, Faults

FAULTS = Faults()


class Work(xgboost.callback.TrainingCallback):
    """The work of each round."""

    def after_iteration(self, model: xgboost.Booster, epoch: int, evals_log: object) -> bool:
        FAULTS.begin_epoch(epoch // STEPS_PER_EPOCH)
        FAULTS.load()
        FAULTS.compute()
        return False


def main() -> None:
    rows = np.random.default_rng(0).random((64, 4))
    FAULTS.begin()
    xgboost.train(
        {"nthread": 1, "max_depth": 2},
        xgboost.DMatrix(rows, rows.sum(axis=1)),
        EPOCHS * STEPS_PER_EPOCH,
        callbacks=[Work()],
    )


if __name__ == "__main__":
    main()
