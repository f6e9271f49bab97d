"""A Scrapy spider with Scrapy's own settings: scrapy runspider spider.py -a urls=URL,URL..."""
import scrapy


class Spider(scrapy.Spider):
    name = "spider"
    handle_httpstatus_list = [403]

    def start_requests(self):
        for url in self.urls.split(","):
            yield scrapy.Request(url)

    def parse(self, response):
        print("==", response.url, response.status, response.text, flush=True)
