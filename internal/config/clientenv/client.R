# Written by heed, for R_PROFILE. The site's own profile comes first, as R would read it.
local({
  files <- Sys.getenv("R_PROFILE_BEFORE_HEED")
  if (!nzchar(files)) {
    files <- c(file.path(R.home("etc"), .Platform$r_arch, "Rprofile.site"), file.path(R.home("etc"), "Rprofile.site"))
  }
  files <- files[file.exists(files)]
  if (length(files) > 0) sys.source(files[1], envir = globalenv())
})

# The package curl reads CURL_CA_BUNDLE itself from version 5.2.0 on; httr uses curl, and
# resets its handles.
setHook(packageEvent("curl", "onLoad"), function(...) {
  bundle <- Sys.getenv("CURL_CA_BUNDLE")
  if (!nzchar(bundle) || utils::packageVersion("curl") >= "5.2.0") return(invisible())
  create <- getExportedValue("curl", "new_handle")
  reset <- getExportedValue("curl", "handle_reset")
  utils::assignInNamespace("new_handle", function(...) {
    curl::handle_setopt(create(cainfo = bundle), ...)
  }, "curl")
  utils::assignInNamespace("handle_reset", function(handle) {
    reset(handle)
    curl::handle_setopt(handle, cainfo = bundle)
    invisible(handle)
  }, "curl")
})
