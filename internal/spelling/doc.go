// Package spelling measures how far two spellings are apart, for suggestions to people who
// mistyped a name.
package spelling
