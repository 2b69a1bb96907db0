"""An application over SQLAlchemy's ORM whose tables Alembic makes and changes.

Usage: orm.py DSN
"""

import sys
import tempfile
import traceback
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import orm

DSN = sys.argv[1] if len(sys.argv) > 1 else "postgresql://postgres@127.0.0.1:5432/postgres"
URL = DSN.replace("postgresql://", "postgresql+psycopg://", 1)


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "orm_author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(80), unique=True)
    born: orm.Mapped[int | None]
    works: orm.Mapped[list["Work"]] = orm.relationship(
        back_populates="author", cascade="all, delete-orphan", order_by="Work.title")


class Work(Base):
    __tablename__ = "orm_work"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    title: orm.Mapped[str] = orm.mapped_column(sa.Text)
    price: orm.Mapped[float | None] = orm.mapped_column(sa.Numeric(8, 2))
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("orm_author.id"), index=True)
    author: orm.Mapped[Author] = orm.relationship(back_populates="works")


FIRST = '''
revision, down_revision, branch_labels, depends_on = "0001", None, None, None
import sqlalchemy as sa
from alembic import op

def upgrade():
    op.create_table("orm_author", sa.Column("id", sa.Integer, primary_key=True),
                    sa.Column("name", sa.String(80), nullable=False),
                    sa.UniqueConstraint("name"))
    op.create_table("orm_work", sa.Column("id", sa.Integer, primary_key=True),
                    sa.Column("title", sa.Text, nullable=False),
                    sa.Column("author_id", sa.Integer, sa.ForeignKey("orm_author.id"),
                              nullable=False))

def downgrade():
    op.drop_table("orm_work")
    op.drop_table("orm_author")
'''
SECOND = '''
revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None
import sqlalchemy as sa
from alembic import op

def upgrade():
    op.add_column("orm_author", sa.Column("birth", sa.Integer))
    op.alter_column("orm_author", "birth", new_column_name="born")
    op.add_column("orm_work", sa.Column("price", sa.Numeric(8, 2)))
    op.create_index("ix_orm_work_author_id", "orm_work", ["author_id"])

def downgrade():
    op.drop_index("ix_orm_work_author_id", "orm_work")
    op.drop_column("orm_work", "price")
    op.drop_column("orm_author", "born")
'''
ENVIRONMENT = '''
from alembic import context
from sqlalchemy import create_engine

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.begin() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
'''


def migrations(folder):
    versions = folder / "versions"
    versions.mkdir()
    (folder / "env.py").write_text(ENVIRONMENT)
    (folder / "script.py.mako").write_text("")
    (versions / "first.py").write_text(FIRST)
    (versions / "second.py").write_text(SECOND)
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("sqlalchemy.url", URL.replace("%", "%%"))
    return config


def alembic_makes_and_changes_tables(engine, config):
    with engine.begin() as c:
        c.execute(sa.text("DROP TABLE IF EXISTS orm_work, orm_author, alembic_version"))
    command.upgrade(config, "head")
    command.downgrade(config, "0001")
    command.upgrade(config, "head")
    command.downgrade(config, "base")
    assert not sa.inspect(engine).has_table("orm_author")
    command.upgrade(config, "head")


def what_is_there_is_what_the_classes_say(engine, config):
    with engine.connect() as c:
        difference = compare_metadata(MigrationContext.configure(c), Base.metadata)
    assert [d for d in difference if "alembic_version" not in str(d) and "orm_" in str(d)] == [], difference


def reflection(engine, config):
    look = sa.inspect(engine)
    assert {"orm_author", "orm_work"} <= set(look.get_table_names())
    columns = {c["name"]: c for c in look.get_columns("orm_work")}
    assert list(columns) == ["id", "title", "author_id", "price"]
    assert isinstance(columns["price"]["type"], sa.Numeric) and columns["price"]["type"].scale == 2
    assert not columns["title"]["nullable"] and columns["price"]["nullable"]
    assert look.get_pk_constraint("orm_work")["constrained_columns"] == ["id"]
    (key,) = look.get_foreign_keys("orm_work")
    assert (key["referred_table"], key["constrained_columns"]) == ("orm_author", ["author_id"])
    assert [i["name"] for i in look.get_indexes("orm_work")] == ["ix_orm_work_author_id"]
    assert [u["column_names"] for u in look.get_unique_constraints("orm_author")] == [["name"]]
    table = sa.Table("orm_work", sa.MetaData(), autoload_with=engine)
    assert table.c.author_id.references(table.metadata.tables["orm_author"].c.id)


def objects_are_kept(engine, config):
    with orm.Session(engine) as s:
        ada = Author(name="Ada", born=1815)
        ada.works = [Work(title="Notes", price=12.5), Work(title="Letters")]
        s.add_all([ada, *(Author(name=f"author {n}", born=1900 + n) for n in range(50))])
        s.commit()
        assert ada.id is not None and [w.title for w in ada.works] == ["Letters", "Notes"]
    with orm.Session(engine) as s:
        ada = s.scalars(sa.select(Author).where(Author.name == "Ada")).one()
        ada.works[0].title = "Correspondence"
        s.delete(ada.works[1])
        s.commit()
        assert [w.title for w in s.scalars(sa.select(Work))] == ["Correspondence"]


def questions(engine, config):
    with orm.Session(engine) as s:
        count = sa.func.count(Work.id)
        joined = (sa.select(Author.name, count).outerjoin(Author.works).group_by(Author.name)
                  .order_by(count.desc(), Author.name).limit(2))
        assert s.execute(joined).all() == [("Ada", 1), ("author 0", 0)]
        loaded = s.scalars(sa.select(Author).options(orm.selectinload(Author.works))
                           .where(Author.born.in_([1815, 1901]))).all()
        assert sorted(len(a.works) for a in loaded) == [0, 1]
        best = sa.select(sa.func.max(Author.born)).scalar_subquery()
        assert s.scalars(sa.select(Author.name).where(Author.born == best)).one() == "author 49"
        assert s.scalar(sa.select(sa.exists().where(Author.name.like("author 4%"))))
        changed = s.execute(sa.update(Author).where(Author.born > 1940).values(born=Author.born + 1)
                            .returning(Author.id))
        assert len(changed.all()) == 9
        s.rollback()


def failures_and_recovery(engine, config):
    with orm.Session(engine) as s:
        s.add(Author(name="Ada"))
        try:
            s.commit()
        except sa.exc.IntegrityError as e:
            assert e.orig.diag.constraint_name == "orm_author_name_key"
            s.rollback()
        else:
            raise AssertionError("two of one name")
        with s.begin_nested() as savepoint:
            s.add(Author(name="never"))
            s.flush()
            savepoint.rollback()
        s.add(Author(name="after all"))
        s.commit()
        assert s.scalar(sa.select(sa.func.count()).where(Author.name.in_(["never", "after all"]))) == 1
    with engine.connect() as c:
        pid = c.scalar(sa.text("SELECT pg_backend_pid()"))
        with engine.connect() as other:
            other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        try:
            c.execute(sa.text("SELECT 1"))
        except sa.exc.DBAPIError as e:
            assert e.connection_invalidated
        else:
            raise AssertionError("the lost connection answers")
    with engine.connect() as c:
        assert c.scalar(sa.text("SELECT 1")) == 1


TESTS = [alembic_makes_and_changes_tables, what_is_there_is_what_the_classes_say, reflection,
         objects_are_kept, questions, failures_and_recovery]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        config = migrations(Path(folder))
        engine = sa.create_engine(URL)
        for test in TESTS:
            try:
                test(engine, config)
            except Exception:
                failed += 1
                print(f"{test.__name__}:")
                traceback.print_exc(limit=-2, file=sys.stdout, chain=False)
        engine.dispose()
    print(f"sqlalchemy: {len(TESTS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
