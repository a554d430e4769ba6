"""``calibrant replay --journal``: a stream that several runs write at once."""

from __future__ import annotations

from contextlib import closing

from calibrant.cli.options import refuse_beside
from calibrant.cli.replay import Run
from calibrant.stream.session import open_session


class JournaledRun(Run):
    """One replay into a journal, from its options to its last file."""

    def go(self, as_json: bool) -> None:
        self._refuse_others()
        path = str(self.outputs.journal)
        session = self.options.session().journaled(path, self.options.seed)
        with closing(session.journal):
            summary = self._made(open_session(self.options, session))
        self._tell(summary, as_json)

    def _refuse_others(self) -> None:
        others = {
            "--state": self.outputs.state,
            "--by": self.outputs.by,
            "--available": self.job.available,
            "--score": self.options.scale == "score",
            "--again": self.manner.again,
            "--authenticate-file": self.outputs.authenticate_file,
            "--secret-file and CALIBRANT_SECRET": self.options.secret,
        }
        refuse_beside("--journal", others)
