// Protocol-buffer messages by protozero, with views that are the standard's.
#pragma once

#include <string_view>

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
