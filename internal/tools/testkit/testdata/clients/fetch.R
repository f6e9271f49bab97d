# Prints the pages at URLs as the packages curl and httr give them.
for (url in commandArgs(TRUE)) {
  cat("==", url, "\n")
  cat(rawToChar(curl::curl_fetch_memory(url)$content), "\n")
  cat(httr::content(httr::GET(url), "text", encoding = "UTF-8"), "\n")
}
