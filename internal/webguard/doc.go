// Package webguard protects servers that trust every process on the same machine from foreign web
// pages. A browser that shows such a page sends requests to any address that the page names, in
// the name of its user.
package webguard
