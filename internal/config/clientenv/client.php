<?php
// Written by heed. PHP runs this file before each program, in place of the
// auto_prepend_file of the other ini files, which is run below.

// Streams without a context of their own use the proxy.
(static function (): void {
    $proxy = parse_url((string) getenv('http_proxy'));
    if (isset($proxy['host'], $proxy['port'])) {
        stream_context_set_default(['http' => [
            'proxy' => "tcp://{$proxy['host']}:{$proxy['port']}",
            'request_fulluri' => true,
        ]]);
    }
})();

$heed_prepended = (static function (): string {
    $last = '';
    foreach ([php_ini_loaded_file(), ...explode(',', (string) php_ini_scanned_files())] as $name) {
        $settings = is_file($name = trim((string) $name)) ? @parse_ini_file($name) : [];
        $file = $settings['auto_prepend_file'] ?? __FILE__;
        $last = $file === __FILE__ ? $last : $file;
    }
    return $last === 'none' ? '' : $last;
})();
if ($heed_prepended !== '') {
    require $heed_prepended;
}
unset($heed_prepended);
