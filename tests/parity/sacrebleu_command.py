"""The command of the sacreBLEU package, with sums as Python took them up to 3.11: from 3.12 on sum()
compensates rounding, and with it the last digit of a score may be another."""
import builtins
import functools
import operator
import sys

builtins.sum = lambda values, start=0: functools.reduce(operator.add, values, start)

from sacrebleu.sacrebleu import main  # noqa: E402  (it is to find the sum above)

sys.exit(main())
