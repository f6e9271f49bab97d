// Package command holds the verbs a person types, and puts the parts of heed
// together. It is the only place that knows every part.
//
// Outside packages: github.com/alecthomas/kong for the command line,
// github.com/pelletier/go-toml/v2 for proxy.toml.
package command
