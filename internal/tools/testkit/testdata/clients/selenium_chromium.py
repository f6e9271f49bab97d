"""Prints the titles of the pages at URLs as Selenium sees them."""
import sys
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

options = webdriver.ChromeOptions()
options.binary_location = "/usr/bin/chromium"
for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"):
    options.add_argument(argument)
driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
for url in sys.argv[1:]:
    driver.get(url)
    print("==", url, driver.title, driver.find_element("tag name", "body").text)
driver.quit()
