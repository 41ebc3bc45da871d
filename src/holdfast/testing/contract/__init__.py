"""The store contract as tests: what `holdfast.stores.base` promises, every store keeps.

| module      | promises about                                                               |
|-------------|------------------------------------------------------------------------------|
| `records`   | create, load, delete                                                         |
| `updates`   | update, and that nothing can be changed from outside                         |
| `appends`   | append: order, `after`, all or none                                          |
| `reads`     | read and tail                                                                |
| `once`      | repeats of an append                                                         |
| `leases`    | begin, journal, renew, release, finish                                       |
| `branches`  | branch                                                                       |
| `folds`     | the folds of a record                                                        |
| `erasing`   | erase and clear                                                              |
| `lists`     | list                                                                         |
| `expiry`    | expire                                                                       |
| `searching` | search                                                                       |
| `watching`  | watch                                                                        |
| `transfers` | export and restore                                                           |
| `inputs`    | arguments that are wrong, or too large                                       |
| `tenants`   | tenants, and operations that a store declares as unsupported                 |
| `values`    | keys and values, which come back exactly                                     |
| `races`     | many writers at once, and cancellation                                       |
| `life`      | verify, backup, close, and processes that die                                |
| `model`     | a long run of random operations                                              |
"""

from holdfast.testing.contract.appends import Appends
from holdfast.testing.contract.branches import Branches
from holdfast.testing.contract.erasing import Clearing, Erasing
from holdfast.testing.contract.expiry import Expiry
from holdfast.testing.contract.folds import Folds
from holdfast.testing.contract.inputs import Inputs, Sizes
from holdfast.testing.contract.leases import Leases
from holdfast.testing.contract.life import Life
from holdfast.testing.contract.lists import Lists
from holdfast.testing.contract.model import Runs
from holdfast.testing.contract.once import Once
from holdfast.testing.contract.races import Races
from holdfast.testing.contract.reads import Reads
from holdfast.testing.contract.records import Records
from holdfast.testing.contract.searching import Searching
from holdfast.testing.contract.tenants import Tenants
from holdfast.testing.contract.transfers import Transfers
from holdfast.testing.contract.updates import Updates
from holdfast.testing.contract.values import Values
from holdfast.testing.contract.waiting import Waiting
from holdfast.testing.contract.watching import Watching

__all__ = ["StoreContract"]


class StoreContract(
    Records,
    Updates,
    Appends,
    Reads,
    Once,
    Leases,
    Waiting,
    Branches,
    Folds,
    Erasing,
    Clearing,
    Lists,
    Expiry,
    Searching,
    Watching,
    Transfers,
    Inputs,
    Sizes,
    Tenants,
    Values,
    Races,
    Life,
    Runs,
):
    """Subclass it, say how your store is made, and pytest runs every promise against it.

        class TestMyStore(StoreContract):
            def make(self, tmp_path):
                return MyStore(tmp_path / "data")

            def url(self, tmp_path):
                return f"mystore:{tmp_path / 'data'}"

            def open_backup(self, path):
                return MyStore(path)

    make         a store, not opened yet; two made for one folder have the same data
    is_shared    False if they have not, as for a store in memory
    url          what `open_store` takes, in another process, for the same data
    open_backup  a store on what `backup` wrote
    damage       changes a stored entry or record behind the store's back

    Only `make` has to be there. What cannot be tried without one of the others is skipped, and
    says so: "declared: ...". So is what needs an operation that the store names in `unsupported`.

    A store takes the time from `holdfast.ids.now()`, in the task of its caller; that is how the
    tests move it. The time of a lease is real time.
    """
