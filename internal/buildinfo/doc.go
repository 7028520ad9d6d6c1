// Package buildinfo says which version of Windlass this program is.
package buildinfo
