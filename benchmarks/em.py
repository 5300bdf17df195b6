"""EM of Dawid–Skene against crowd-kit's: time per iteration, likelihood reached, and a whole fit from a CSV file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import typer
from crowdkit.aggregation import DawidSkene
from support import fresh
from support.data import accuracy, data_folder, read_answers, read_gold, simulate_answers
from support.report import Report
from support.timing import interleaved

import crowdppl as cp
from crowdppl.inference import em
from crowdppl.inference.model import Model
from crowdppl.models import find_story
