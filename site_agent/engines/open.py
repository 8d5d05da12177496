"""The engine that ``site.yaml`` names."""

from functools import partial
from importlib.util import find_spec

from consortium.base.one_thread import one_thread
from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.engines.base import Engine, Threads


def open_engine(config: SiteConfig) -> Engine:
    """Make it ready; nothing is started or connected to before it is used.

    From here on this process computes with one BLAS thread, whatever the engine. Raises
    ConfigurationError if its package is not installed.
    """
    one_thread()
    if config.engine == "threads":
        return Threads(config.most_workers, config.most_memory)
    from site_agent.engines.remote import RemoteEngine

    address = config.engine_address or ""
    try:
        if config.engine == "processes":
            from site_agent.engines.remote import Processes

            begin = partial(Processes, config.most_workers)
            return RemoteEngine("processes", begin, config.most_memory)
        if config.engine == "dask":
            from site_agent.engines.dask import DaskCluster

            return RemoteEngine("dask", partial(DaskCluster, address), config.most_memory)
        if find_spec("ray") is None:  # another process imports it
            raise ImportError("the package ray does not exist")
        from site_agent.engines.ray import RayCluster

        return RemoteEngine("ray", partial(RayCluster, address), config.most_memory)
    except ImportError as error:
        raise ConfigurationError(
            f"site.yaml: field 'engine': {config.engine} is not installed here ({error}). Install "
            f"cape-consortium[{config.engine}], or choose threads."
        ) from error
