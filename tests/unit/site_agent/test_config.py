"""The site's configuration: what is wrong is named."""

from pathlib import Path
from typing import Literal

import pytest

from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.layout import CONFIG

GOOD = "name: east\ndataset: data\nexchange: mail\n"


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    for exchange in (str(tmp_path / "mail"), "s3://bucket/prefix", "sftp://me@host/mail"):
        secret = tmp_path / "secret.yaml"
        config = SiteConfig.create("east", tmp_path / "data", exchange, secret)
        config.save(tmp_path)
        assert SiteConfig.load(tmp_path) == config.model_copy(
            update={"ledger": tmp_path / "ledger.sqlite", "cache": tmp_path / "cache"}
        )


def test_every_field_is_explained_in_the_file(tmp_path: Path) -> None:
    SiteConfig.create("east", tmp_path / "data", "mail").save(tmp_path)
    lines = (tmp_path / CONFIG).read_text().splitlines()
    for name in SiteConfig.model_fields:
        (place,) = [i for i, line in enumerate(lines) if line.startswith(f"{name}:")]
        assert lines[place - 1].startswith("# "), name


def test_relative_paths_are_meant_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(GOOD + "credentials: secret.yaml\nledger: ../shared.sqlite\n")
    config = SiteConfig.load(tmp_path)
    assert config.dataset == tmp_path / "data"
    assert config.exchange == str(tmp_path / "mail")
    assert config.credentials == tmp_path / "secret.yaml"
    assert config.ledger == tmp_path / ".." / "shared.sqlite"
    (tmp_path / CONFIG).write_text(GOOD.replace("exchange: mail", "exchange: s3://mail"))
    assert SiteConfig.load(tmp_path).exchange == "s3://mail"


def test_prepared_scans_may_lie_on_another_disk_but_not_where_others_read(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(GOOD + "cache: ../large/disk\n")
    assert SiteConfig.load(tmp_path).cache == tmp_path / ".." / "large" / "disk"
    for place in ("mail", "mail/cache", "data/../mail/x"):
        (tmp_path / CONFIG).write_text(GOOD + f"cache: {place}\n")
        with pytest.raises(ConfigurationError, match=r"field 'cache'.*is on the exchange"):
            SiteConfig.load(tmp_path)


WRONG = {
    "": "field 'name'",
    "- a\n": "has no fields",
    "name: [\n": "can't be read",
    GOOD.replace("east", "East!"): "name must be",
    GOOD.replace("exchange: mail\n", ""): "field 'exchange'",
    GOOD + "limit: 3\n": "field 'limit' is unknown",
    GOOD + "limits: {subject: 1}\n": "field 'limits' is unknown",
    GOOD + "prefect: perhaps\n": "prefect must be",
    GOOD + "name: west\n": "line 4 can't be read as plain YAML",
    GOOD + "ledger: &a x\ncredentials: *a\n": "can't be read as plain YAML",
    GOOD + 'cache: "x\\0y"\n': "can't be read as plain YAML",
    GOOD + "ledger: !!int ''\n": "can't be read as plain YAML",
}


@pytest.mark.parametrize("text", WRONG)
def test_the_field_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        SiteConfig.load(tmp_path)
    assert WRONG[text] in str(caught.value)
    assert str(tmp_path / CONFIG) in str(caught.value)


def test_not_text_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        SiteConfig.load(tmp_path)
    (tmp_path / CONFIG).write_bytes(b"\xff\xfe name")
    with pytest.raises(ConfigurationError, match="can't be read"):
        SiteConfig.load(tmp_path)


def test_a_name_that_no_study_could_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name must be"):
        SiteConfig.create("../east", tmp_path, "mail")
    with pytest.raises(ConfigurationError, match="'centre' is the coordinator's own name"):
        SiteConfig.create("centre", tmp_path, "mail")


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_cluster_has_an_address_and_nothing_else_has(tmp_path: Path, engine: str) -> None:
    (tmp_path / CONFIG).write_text(GOOD + f"engine: {engine}\n")
    with pytest.raises(ConfigurationError, match=f"engine {engine} needs its cluster's address"):
        SiteConfig.load(tmp_path)
    (tmp_path / CONFIG).write_text(GOOD + "engine_address: tls://here:8786\n")
    with pytest.raises(ConfigurationError, match="engine threads has none"):
        SiteConfig.load(tmp_path)
    (tmp_path / CONFIG).write_text(GOOD + f"engine: {engine}\nengine_address: here:1\n")
    assert SiteConfig.load(tmp_path).engine_address == "here:1"


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_cores_and_memory_decide_where_the_file_does_not(
    engine: Literal["threads", "processes"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = SiteConfig.create("east", tmp_path, "mail").model_copy(update={"engine": engine})
    for cores, memory, workers in ((1, 10**11, 1), (64, 10**11, 64), (64, 10**9, 3), (2, 10**8, 1)):
        monkeypatch.setattr("site_agent.config.usable_cores", lambda cores=cores: cores)
        monkeypatch.setattr("site_agent.config.usable_memory", lambda memory=memory: memory)
        assert new.most_workers == workers
        assert new.most_memory == memory // 2
        assert new.model_copy(update={"workers": 5}).most_workers == 5


def test_the_memory_of_a_cluster_is_not_that_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(GOOD + "engine: dask\nengine_address: tls://here:8786\n")
    assert SiteConfig.load(tmp_path).most_memory is None


def test_memory_is_told_in_megabytes_or_more(tmp_path: Path) -> None:
    def loaded(text: str) -> SiteConfig:
        (tmp_path / CONFIG).write_text(GOOD + text)
        return SiteConfig.load(tmp_path)

    assert loaded("memory: 2 GB\n").most_memory == 2 * 10**9
    assert loaded("memory: 1.5TB\n").most_memory == 15 * 10**11
    loaded("memory: 500 MB\n").save(tmp_path)
    assert SiteConfig.load(tmp_path).most_memory == 5 * 10**8
    for wrong in ("2", "2000000000", "-2 GB", "2 gb", "two GB", "2 KB", ".inf", "99999999 TB"):
        with pytest.raises(ConfigurationError, match="memory must be"):
            loaded(f"memory: {wrong}\n")
    for little in ("0 GB", "99.999 MB"):
        with pytest.raises(ConfigurationError, match="less than 100 MB"):
            loaded(f"memory: {little}\n")
