package main

func loadRows() []row { return nil }
