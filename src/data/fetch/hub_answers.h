// Reads the answers of the Hugging Face hub's API. They come from outside: what is not as expected
// is a DataError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/fetch/hub.h"

namespace lockstep {

// Reads /api/.../revision/REVISION. The answer to more than kMostSiblings files may not name all of
// them; it then has no files.
HubListing hub_listing_of(std::string_view answer, const std::string& url);

// Reads a page of /api/.../tree/COMMIT: the files, folders left out.
std::vector<std::string> hub_tree_of(std::string_view answer, const std::string& url);

// Reads a listing as Hub keeps it in the cache; the commit is the caller's.
HubListing kept_hub_listing_of(std::string_view text, const std::string& file);
std::string kept_text(const HubListing& listing);

}  // namespace lockstep
