"""Say which tables of RESULTS.md are older than the code they measure.

Short, because `results` reads the tables; separate, because measuring takes an hour.
"""

from benchmarks.results import RESULTS, in_a_repository, stale


def main() -> None:
    if not in_a_repository():
        print("There is no git repository here, so nobody can tell which tables are stale.")
        return
    tables = stale()
    print(f"{len(tables) or 'No'} tables of {RESULTS.name} are older than the code they measure.")
    print("\n".join(tables))


if __name__ == "__main__":
    main()
