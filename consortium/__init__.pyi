from consortium.python.comparison import compare as compare
from consortium.python.networks import PrivateGroupICA as PrivateGroupICA
from consortium.python.networks import PrivatePCA as PrivatePCA
from consortium.python.privacy import Privacy as Privacy
from consortium.python.regression import PrivateGLM as PrivateGLM
from consortium.python.result import StudyResult as StudyResult
from consortium.python.result import open_result as open_result
from consortium.python.simulated import load_study as load_study
from consortium.python.simulated import simulate as simulate

__version__: str
