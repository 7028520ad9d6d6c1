package main

func instanceRows() []row { return nil }
