"""Prints the pages at URLs as mechanize gives them; it reads robots.txt itself unless told not to."""
import sys
import mechanize

browser = mechanize.Browser()
browser.set_handle_robots(False)
for url in sys.argv[1:]:
    print("==", url)
    try:
        print(browser.open(url).read().decode())
    except mechanize.HTTPError as refused:
        print(refused)
