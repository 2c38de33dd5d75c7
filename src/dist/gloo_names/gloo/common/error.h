// Included by c10d's ProcessGroupGloo.hpp, which uses no name of it. See context.h.
#pragma once
