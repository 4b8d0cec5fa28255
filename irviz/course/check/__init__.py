"""Grade the exercises of the notebooks.

Each function takes the answer to one exercise and returns a `Verdict`, which says what was
expected, what the answer gave, and a hint. An answer is marked by what it computes and by the IR
that it makes, never by its text. None or `...` is "not answered yet".
"""

from irviz.course.check.check_answers import Mark as Mark
from irviz.course.check.check_answers import Verdict as Verdict
from irviz.course.check.exercises import add_row as add_row
from irviz.course.check.exercises import batch_schedule as batch_schedule
from irviz.course.check.exercises import exact_sums as exact_sums
from irviz.course.check.exercises import fuse_unless_shared as fuse_unless_shared
from irviz.course.check.exercises import fused_pipeline as fused_pipeline
from irviz.course.check.exercises import half_weights as half_weights
from irviz.course.check.exercises import leaky_relu as leaky_relu
from irviz.course.check.exercises import leaky_relu_rule as leaky_relu_rule
from irviz.course.check.exercises import loop_order as loop_order
from irviz.course.check.exercises import multiply_add as multiply_add
from irviz.course.check.exercises import other_mixture as other_mixture
from irviz.course.check.exercises import pure_calls as pure_calls
from irviz.course.check.exercises import te_linear as te_linear
from irviz.course.check.exercises import three_loops as three_loops
from irviz.course.check.find_the_pass import first_wrong_pass as first_wrong_pass
from irviz.course.check.find_the_pass import small_program as small_program
