// Precompiled for tests that do not use torch themselves (not to be included by hand: files include
// what they use).
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
