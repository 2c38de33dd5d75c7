// c10d's ProcessGroupGloo.hpp includes this file but uses no name of it. See context.h.
#pragma once
