<?php
// Prints the pages at URLs as PHP's streams give them. A refusal is a warning.
foreach (array_slice($argv, 1) as $url) {
    echo "== $url\n", file_get_contents($url);
}
