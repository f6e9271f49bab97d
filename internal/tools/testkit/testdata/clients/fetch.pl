# Prints the page at a URL as a Perl program would: fetch.pl URL [USER-AGENT].
use strict;
use warnings;
use LWP::UserAgent;

my ($url, $name) = @ARGV;
my $agent = LWP::UserAgent->new;
$agent->agent($name) if defined $name;
my $response = $agent->get($url);
die $response->status_line, "\n" unless $response->is_success;
binmode STDOUT;
print $response->content;
