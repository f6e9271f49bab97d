<?php
// Prints the pages at URLs as PHP's curl extension gives them.
foreach (array_slice($argv, 1) as $url) {
    $curl = curl_init($url);
    curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_USERAGENT => 'phpcurl/1.0']);
    echo "== $url\n", curl_exec($curl), curl_getinfo($curl, CURLINFO_RESPONSE_CODE), curl_error($curl), "\n";
}
