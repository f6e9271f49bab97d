-- It is the probe of a store that has no turns. It returns the token.

redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return redis.call('GET', KEYS[1])
