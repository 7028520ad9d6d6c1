package main

func networkRows() []row { return nil }
