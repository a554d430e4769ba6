"""calibrant in the words of other libraries: one package each, none imported unless asked for."""
