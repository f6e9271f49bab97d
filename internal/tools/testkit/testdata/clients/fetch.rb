# Prints the pages at URLs as Net::HTTP and open-uri give them.
require 'net/http'
require 'open-uri'
ARGV.each do |url|
  puts Net::HTTP.get(URI(url))
  begin
    puts URI.open(url).read
  rescue OpenURI::HTTPError => e
    warn e.message
  end
end
