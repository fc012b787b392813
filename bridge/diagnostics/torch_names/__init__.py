"""Make the names of Bridge's logs known when torch reads TORCH_LOGS, also where Bridge was imported before torch.

torch imports every package inside of one that TORCH_LOGS names, before it reads the next name.  Nobody else imports
this one, so that it is loaded then, when torch's logging is there.
"""

from .. import torch_logging

torch_logging.register()
