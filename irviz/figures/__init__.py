"""Figures for a lecture, drawn from the programs that they show and checked against them.

Each figure is declared by a table in `figures.toml`, or by the decorator `irviz.figure` in a
notebook.
"""

from irviz.figures.draw_declared_figures import draw_declaration as draw_declaration
from irviz.figures.figure_declarations import Declaration as Declaration
from irviz.figures.figure_declarations import FigureList as FigureList
from irviz.figures.figure_declarations import read_declarations as read_declarations
from irviz.figures.write_and_check_figures import check as check
from irviz.figures.write_and_check_figures import check_figures as check_figures
from irviz.figures.write_and_check_figures import figure as figure
from irviz.figures.write_and_check_figures import save as save
from irviz.figures.write_and_check_figures import write_figures as write_figures
