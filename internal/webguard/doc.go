// Package webguard keeps other people's web pages away from servers that trust whoever is
// on the same machine. A browser that shows such a page asks whatever address the page
// names, in the name of the person who looks at it.
package webguard
