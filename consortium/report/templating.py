"""Templates of pages: the common parts of a report's and a ledger's."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from consortium.base.formatting import count, number, percent, power_of_ten


def plain_environment(*packages: str) -> Environment:
    """Build the environment of the templates of packages, the first one's before the others'.

    Everything is escaped, a missing value is an error, and numbers are written as people do.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"amount": number, "percent": percent, "power_of_ten": power_of_ten}
    environment.globals["count"] = count
    return environment
